// Asks by the functions of orval. They fetch paths, as in a browser; here fetch is told where the service is.
import { estimateWorkload, fitWorkload, getExportSizesCsvUrl, listSizes, showSize, type ListSizesParams } from "./client";
import { inference, report } from "./round";

const fetchHere = globalThis.fetch;
globalThis.fetch = (path, init) => fetchHere(`${process.argv[2]}${String(path)}`, init);

async function list(params: ListSizesParams) {
  const answer = await listSizes(params);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer));
  return answer.data;
}

void report({
  cheapest: (min_gpu_mem) => list({ min_gpu_mem, sort: ["usd_per_hour"], limit: 1 }),
  choose: (gpu, status, nvlink) => list({ gpu, status, nvlink }),
  page: (limit, cursor) => list({ limit, cursor }),
  size: async (name) => {
    const answer = await showSize(name);
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
    return answer.data;
  },
  csv: async (gpu) => {
    // Its own function would read the CSV as JSON.
    const answer = await fetch(getExportSizesCsvUrl({ gpu }));
    return answer.text();
  },
  fit: async (model, region) => {
    const constraints = { regions: [region] };
    const answer = await fitWorkload({ model, inference, constraints, include: ["rejected"] });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
    return answer.data;
  },
  estimate: async (model) => {
    const answer = await estimateWorkload({ model, inference });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer));
    return answer.data;
  },
  problem: async (name) => {
    const answer = await showSize(name);
    if (answer.status !== 404) throw new Error(JSON.stringify(answer));
    return answer.data;
  },
});
