// Asks by the client of hey-api, which is openapi-ts.
import { estimateWorkload, exportSizesCsv, fitWorkload, listSizes, showSize, type ListSizesData } from "./client";
import { client } from "./client/client.gen";
import { given, inference, report } from "./round";

client.setConfig({ baseUrl: process.argv[2] });

async function list(query: ListSizesData["query"]) {
  const { data, error } = await listSizes({ query });
  return given(data, error);
}

void report({
  cheapest: (min_gpu_mem) => list({ min_gpu_mem, sort: ["usd_per_hour"], limit: 1 }),
  choose: (gpu, status, nvlink) => list({ gpu, status, nvlink }),
  page: (limit, cursor) => list({ limit, cursor }),
  size: async (name) => {
    const { data, error } = await showSize({ path: { name } });
    return given(data, error);
  },
  csv: async (gpu) => {
    const { data, error } = await exportSizesCsv({ query: { gpu } });
    return given(data, error);
  },
  fit: async (model, region) => {
    const body = { model, inference, constraints: { regions: [region] }, include: ["rejected" as const] };
    const { data, error } = await fitWorkload({ body });
    return given(data, error);
  },
  estimate: async (model) => {
    const { data, error } = await estimateWorkload({ body: { model, inference } });
    return given(data, error);
  },
  problem: async (name) => {
    const { error } = await showSize({ path: { name } });
    return given(error);
  },
});
