// Asks by the client class of swagger-typescript-api, which throws what is not a success.
import { Api, type HttpResponse, type Problem } from "./client";
import { inference, report } from "./round";

const api = new Api({ baseUrl: process.argv[2] });

void report({
  cheapest: async (min_gpu_mem) => (await api.sizes.listSizes({ min_gpu_mem, sort: ["usd_per_hour"], limit: 1 })).data,
  choose: async (gpu, status, nvlink) => (await api.sizes.listSizes({ gpu, status, nvlink })).data,
  page: async (limit, cursor) => (await api.sizes.listSizes({ limit, cursor })).data,
  size: async (name) => (await api.sizes.showSize(name)).data,
  csv: async (gpu) => (await api.sizesCsv.exportSizesCsv({ gpu }, { format: "text" })).data,
  fit: async (model, region) => {
    const constraints = { regions: [region] };
    return (await api.fit.fitWorkload({ model, inference, constraints, include: ["rejected"] })).data;
  },
  estimate: async (model) => (await api.estimate.estimateWorkload({ model, inference })).data,
  problem: async (name) => {
    try {
      await api.sizes.showSize(name);
    } catch (refusal) {
      return (refusal as HttpResponse<unknown, Problem>).error;
    }
    throw new Error(`there is a size named ${name}`);
  },
});
