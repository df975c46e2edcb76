// Asks by openapi-generator's typescript-fetch, which renames fields and makes dates of dates.
import { Configuration, ExportsApi, FitApi, ResponseError, SizesApi, type SizeOut, type SizePage } from "./client";
import { inference, report } from "./round";

const configuration = new Configuration({ basePath: process.argv[2] });
const sizes = new SizesApi(configuration);
const files = new ExportsApi(configuration);
const fits = new FitApi(configuration);
const { context_tokens: contextTokens, concurrency } = inference;
const served = { inference: { contextTokens, concurrency } };

function row(size: SizeOut) {
  return {
    name: size.name,
    gpu_count: size.gpuCount,
    gpu_fraction: size.gpuFraction,
    nvlink: size.nvlink,
    disputed_fields: size.disputedFields,
    usd_per_hour: size.usdPerHour,
    on_demand_as_of: size.onDemandAsOf && size.onDemandAsOf.toISOString().slice(0, 10),
  };
}

function rows(page: SizePage) {
  return { items: page.items.map(row), next_cursor: page.nextCursor, total: page.total };
}

void report({
  cheapest: async (minGpuMem) => rows(await sizes.listSizes({ minGpuMem, sort: ["usd_per_hour"], limit: 1 })),
  choose: async (gpu, status, nvlink) => rows(await sizes.listSizes({ gpu, status, nvlink })),
  page: async (limit, cursor) => rows(await sizes.listSizes({ limit, cursor })),
  size: async (name) => row(await sizes.showSize({ name })),
  csv: async (gpu) => (await files.exportSizesCsv({ gpu })).text(),
  fit: async (model, region) => {
    const constraints = { regions: [region] };
    const answer = await fits.fitWorkload({ fitIn: { model, ...served, constraints, include: ["rejected"] } });
    const items = answer.items.map(({ size, cost: { onDemand } }) => {
      return { size, cost: { on_demand: onDemand && { usd_per_hour: onDemand.usdPerHour } } };
    });
    return { items, rejected: answer.rejected };
  },
  estimate: (model) => fits.estimateWorkload({ estimateIn: { model, ...served } }),
  problem: async (name) => {
    try {
      await sizes.showSize({ name });
    } catch (refusal) {
      if (refusal instanceof ResponseError) return refusal.response.json();
    }
    throw new Error(`there is a size named ${name}`);
  },
});
