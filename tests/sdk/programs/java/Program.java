import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ExportsApi;
import org.openapitools.client.api.ExportsApi.APIExportSizesCsvRequest;
import org.openapitools.client.api.FitApi;
import org.openapitools.client.api.SizesApi;
import org.openapitools.client.api.SizesApi.APIListSizesRequest;
import org.openapitools.client.api.SizesApi.APIShowSizeRequest;
import org.openapitools.client.model.ConstraintsIn;
import org.openapitools.client.model.EstimateIn;
import org.openapitools.client.model.FitIn;
import org.openapitools.client.model.FitInclude;
import org.openapitools.client.model.InferenceIn;
import org.openapitools.client.model.Problem;
import org.openapitools.client.model.SizeDetailOut;
import org.openapitools.client.model.SizeStatus;

/** Asks the service by the client of openapi-generator's java, and reports what it got as JSON. */
public class Program {
  private static final ObjectMapper JSON = ApiClient.createDefaultObjectMapper();
  private static final InferenceIn INFERENCE = new InferenceIn().contextTokens(8192).concurrency(32);

  public static void main(String[] arguments) throws Exception {
    var client = new ApiClient();
    client.setHttpClientBuilder(HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1));
    client.updateBaseUri(arguments[0]);
    var sizes = new SizesApi(client);
    var report = new LinkedHashMap<String, Object>();
    report.putAll(sizes(sizes));
    report.put("csv", csvLines(new ExportsApi(client)));
    report.putAll(walk(sizes));
    report.putAll(models(new FitApi(client)));
    report.put("problem", problem(sizes));
    System.out.println(new ObjectMapper().writeValueAsString(report));
  }

  private static Map<String, Object> sizes(SizesApi api) throws ApiException {
    var cheap = APIListSizesRequest.newBuilder().minGpuMem(80.0).sort(List.of("usd_per_hour")).limit(1).build();
    var cheapest = api.listSizes(cheap).getItems().get(0);
    var status = List.of(SizeStatus.SIZE_STATUS_CURRENT, SizeStatus.SIZE_STATUS_RETIRING);
    var asked = APIListSizesRequest.newBuilder().gpu(List.of("A100", "H100")).status(status).nvlink(true).build();
    return Map.of(
        "cheapest", Map.of("name", cheapest.getName(), "usd_per_hour", cheapest.getUsdPerHour()),
        "as_of", cheapest.getOnDemandAsOf().toString(),
        "chosen", api.listSizes(asked).getTotal(),
        "size", told(api.showSize(APIShowSizeRequest.newBuilder().name("NV6ads_A10_v5").build())));
  }

  private static long csvLines(ExportsApi api) throws Exception {
    var csv = api.exportSizesCsv(APIExportSizesCsvRequest.newBuilder().gpu(List.of("A100")).build());
    try (var lines = Files.lines(csv.toPath())) {
      return lines.count();
    }
  }

  private static Map<String, Object> told(SizeDetailOut size) {
    var told = new LinkedHashMap<String, Object>();
    told.put("name", size.getName());
    told.put("gpu_count", size.getGpuCount());
    told.put("gpu_fraction", size.getGpuFraction());
    told.put("nvlink", size.getNvlink());
    told.put("disputed_fields", size.getDisputedFields());
    return told;
  }

  private static Map<String, Object> walk(SizesApi api) throws ApiException {
    var walked = new ArrayList<String>();
    String cursor = null;
    while (true) {
      var page = api.listSizes(APIListSizesRequest.newBuilder().limit(25).cursor(cursor).build());
      page.getItems().forEach(size -> walked.add(size.getName()));
      cursor = page.getNextCursor();
      if (cursor == null) {
        return Map.of("walked", walked, "total", page.getTotal());
      }
    }
  }

  private static Map<String, Object> models(FitApi api) throws ApiException {
    var constraints = new ConstraintsIn().regions(List.of("westeurope"));
    var workload = new FitIn().model("llama-3.1-70b").inference(INFERENCE).constraints(constraints);
    var fit = api.fitWorkload(workload.include(List.of(FitInclude.FIT_INCLUDE_REJECTED)));
    var best = fit.getItems().get(0);
    var rejected = fit.getRejected().get(0);
    var estimate = api.estimateWorkload(new EstimateIn().model("llama-3.1-70b").inference(INFERENCE));
    return Map.of(
        "fit",
        Map.of(
            "size", best.getSize(),
            "usd_per_hour", best.getCost().getOnDemand().getUsdPerHour(),
            "rejected", rejected.getSize(),
            "code", rejected.getFailures().get(0).getCode()),
        "parameters", estimate.getParameters().getTotal().getValue());
  }

  private static Map<String, Object> problem(SizesApi api) throws Exception {
    try {
      api.showSize(APIShowSizeRequest.newBuilder().name("nothing").build());
    } catch (ApiException refusal) {
      var problem = JSON.readValue(refusal.getResponseBody(), Problem.class);
      return Map.of(
          "type", problem.getType(),
          "title", problem.getTitle(),
          "status", problem.getStatus(),
          "detail", problem.getDetail());
    }
    throw new IllegalStateException("there is a size named nothing");
  }
}
