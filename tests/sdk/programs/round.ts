// One round of the service by a generated client, reported as JSON. The types are what the wire promises: a client
// whose numbers are strings, or whose nulls are undefined, does not compile with this.

export interface Size {
  name: string;
  gpu_count: number | null;
  gpu_fraction: string | null;
  nvlink: boolean | null;
  disputed_fields: string[];
  usd_per_hour: number | null;
  on_demand_as_of: string | null;
}

export interface Page {
  items: Size[];
  next_cursor: string | null;
  total: number;
}

export interface Fit {
  items: { size: string; cost: { on_demand?: { usd_per_hour: number | null } } }[];
  rejected: { size: string; failures: { code: string }[] }[] | null;
}

export interface Estimate {
  parameters?: { total: { value: number | null } };
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
}

export interface Service {
  cheapest(minGpuMem: number): Promise<Page>;
  choose(gpu: string[], status: ("current" | "retiring")[], nvlink: boolean): Promise<Page>;
  page(limit: number, cursor: string | undefined): Promise<Page>;
  size(name: string): Promise<Size>;
  csv(gpu: string[]): Promise<string>;
  fit(model: string, region: string): Promise<Fit>;
  estimate(model: string): Promise<Estimate>;
  problem(name: string): Promise<Problem>;
}

export const inference = { context_tokens: 8192, concurrency: 32 };

export function given<Body>(body: Body | undefined, error?: unknown): Body {
  if (body === undefined) throw new Error(JSON.stringify(error));
  return body;
}

async function walk(service: Service) {
  const walked: string[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await service.page(25, cursor);
    walked.push(...page.items.map((size) => size.name));
    if (page.next_cursor === null) return { walked, total: page.total };
    cursor = page.next_cursor;
  }
}

async function sizes(service: Service) {
  const [cheapest] = (await service.cheapest(80)).items;
  const { name, gpu_count, gpu_fraction, nvlink, disputed_fields } = await service.size("NV6ads_A10_v5");
  return {
    cheapest: { name: cheapest.name, usd_per_hour: cheapest.usd_per_hour },
    as_of: cheapest.on_demand_as_of,
    chosen: (await service.choose(["A100", "H100"], ["current", "retiring"], true)).total,
    size: { name, gpu_count, gpu_fraction, nvlink, disputed_fields },
    csv: (await service.csv(["A100"])).split("\n").length - 1,
  };
}

async function models(service: Service) {
  const { items, rejected } = await service.fit("llama-3.1-70b", "westeurope");
  const [first] = rejected ?? [];
  return {
    fit: {
      size: items[0].size,
      usd_per_hour: items[0].cost.on_demand?.usd_per_hour,
      rejected: first.size,
      code: first.failures[0].code,
    },
    parameters: (await service.estimate("llama-3.1-70b")).parameters?.total.value,
  };
}

export async function report(service: Service): Promise<void> {
  const { type, title, status, detail } = await service.problem("nothing");
  const seen = { ...(await sizes(service)), ...(await walk(service)), ...(await models(service)) };
  console.log(JSON.stringify({ ...seen, problem: { type, title, status, detail } }));
}
