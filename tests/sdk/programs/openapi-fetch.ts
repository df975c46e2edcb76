// Asks by openapi-fetch over the types of openapi-typescript.
import createClient from "openapi-fetch";
import type { paths } from "./client";
import { given, inference, report } from "./round";

const client = createClient<paths>({ baseUrl: process.argv[2] });

async function list(query: NonNullable<paths["/sizes"]["get"]["parameters"]["query"]>) {
  const { data, error } = await client.GET("/sizes", { params: { query } });
  return given(data, error);
}

void report({
  cheapest: (min_gpu_mem) => list({ min_gpu_mem, sort: ["usd_per_hour"], limit: 1 }),
  choose: (gpu, status, nvlink) => list({ gpu, status, nvlink }),
  page: (limit, cursor) => list({ limit, cursor }),
  size: async (name) => {
    const { data, error } = await client.GET("/sizes/{name}", { params: { path: { name } } });
    return given(data, error);
  },
  csv: async (gpu) => {
    const { data, error } = await client.GET("/sizes.csv", { params: { query: { gpu } }, parseAs: "text" });
    return given(data, error);
  },
  fit: async (model, region) => {
    const body = { model, inference, constraints: { regions: [region] }, include: ["rejected" as const] };
    const { data, error } = await client.POST("/fit", { body });
    return given(data, error);
  },
  estimate: async (model) => {
    const { data, error } = await client.POST("/estimate", { body: { model, inference } });
    return given(data, error);
  },
  problem: async (name) => {
    const { error } = await client.GET("/sizes/{name}", { params: { path: { name } } });
    return given(error);
  },
});
