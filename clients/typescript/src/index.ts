import createClient, { type Client, type ClientOptions } from "openapi-fetch";
import type { components, paths } from "./contract.js";

export type { components, operations, paths } from "./contract.js";
export type Problem = components["schemas"]["Problem"];
export type Size = components["schemas"]["SizeOut"];
export type Vmsizes = Client<paths>;

/** A page of a list. */
export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** The service did not answer with a page; `problem` says why, where it could. */
export class Refused extends Error {
  constructor(readonly problem?: Problem) {
    super(problem?.detail ?? "the answer cannot be understood");
  }
}

/** A client of the service at a URL. */
export function connect(baseUrl: string, options: Omit<ClientOptions, "baseUrl"> = {}): Vmsizes {
  return createClient<paths>({ ...options, baseUrl });
}

/** Every item of a list, page after page; `ask` is called with the cursor of each. Throws Refused. */
export async function* walk<Item>(
  ask: (cursor?: string) => Promise<{ data?: Page<Item>; error?: Problem }>,
): AsyncGenerator<Item, void> {
  let cursor: string | undefined;
  do {
    const { data, error } = await ask(cursor);
    if (data === undefined) throw new Refused(error);
    yield* data.items;
    cursor = data.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
