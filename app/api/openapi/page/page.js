// Shows the contract with Swagger UI, for trying it out on the server that served the page.

const METHODS = ["get", "post"];

/** Tell the examples of optional parameters in words: filled in, all of them at once would be the question. */
function withExamplesTold(contract) {
  for (const path of Object.values(contract.paths)) {
    for (const operation of METHODS.map((method) => path[method]).filter(Boolean)) {
      for (const parameter of (operation.parameters ?? []).filter((one) => !one.required)) {
        const example = [parameter.example].flat().join(",");
        if (example !== "") {
          parameter.description += ` Example: \`${example}\`.`;
        }
        delete parameter.example;
        delete parameter.allowEmptyValue; // an empty value is none: no need of a box to tick
      }
    }
  }
  return contract;
}

const answer = await fetch("openapi.json");
const contract = withExamplesTold(await answer.json());
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
