// Shows the OpenAPI document with Swagger UI, which sends requests to the server of this page.

const METHODS = ["get", "post"];

/** Move the examples of optional parameters to their descriptions: Swagger UI would fill in all of them at once. */
function withExamplesInDescriptions(contract) {
  for (const path of Object.values(contract.paths)) {
    for (const operation of METHODS.map((method) => path[method]).filter(Boolean)) {
      for (const parameter of (operation.parameters ?? []).filter((one) => !one.required)) {
        const example = [parameter.example].flat().join(",");
        if (example !== "") {
          parameter.description += ` Example: \`${example}\`.`;
        }
        delete parameter.example;
        delete parameter.allowEmptyValue; // would show a checkbox, though an empty value means none
      }
    }
  }
  return contract;
}

const response = await fetch("openapi.json");
const contract = withExamplesInDescriptions(await response.json());
contract.servers = [{ url: new URL(".", window.location.href).href.replace(/\/$/, "") }];

window.SwaggerUIBundle({
  spec: contract,
  dom_id: "#contract",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  validatorUrl: null,
});
