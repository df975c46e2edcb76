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

/** The service did not return a page; `problem` is the reason it gave, if any. */
export class Refused extends Error {
  constructor(readonly problem?: Problem) {
    super(problem?.detail ?? "the response cannot be understood");
  }
}

/** Returns a client of the service at a URL. */
export function connect(baseUrl: string, options: Omit<ClientOptions, "baseUrl"> = {}): Vmsizes {
  return createClient<paths>({ ...options, baseUrl });
}

/** Yields every item of a list, page by page; `listPage` is called with the cursor of each. Throws Refused. */
export async function* walk<Item>(
  listPage: (cursor?: string) => Promise<{ data?: Page<Item>; error?: Problem }>,
): AsyncGenerator<Item, void> {
  let cursor: string | undefined;
  do {
    const { data, error } = await listPage(cursor);
    if (data === undefined) throw new Refused(error);
    yield* data.items;
    cursor = data.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
