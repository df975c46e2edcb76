"""What schemathesis does not know by itself of a fair refusal.

What the document allows is refused only for what the document cannot say. A name that the catalog does not have, two
fields that contradict each other, a forged cursor: these are problems of types of their own. A `bad-parameter` says
that the request is not of the document, so it must never answer one that is.
And a list in a URL that has one value is no different from that value.
"""

from collections.abc import Mapping

import schemathesis


@schemathesis.check
def refused_only_for_what_the_document_cannot_say(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Fail where a request of the document is taken for one that is not."""
    del ctx
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 422:
        return
    kind = response.json().get("type")
    if kind == "/problems/bad-parameter":
        raise AssertionError(f"the document allows this, and it is refused as {kind}")


@schemathesis.hook
def filter_case(ctx: schemathesis.HookContext, case: schemathesis.Case) -> bool:
    """Leave out requests that are wrong only before they are written: `name=false` is a list of one text.

    And those of some fields of a list: their items are not of the schema, which is that of whole items.
    """
    del ctx
    query = case.query or {}
    if "fields" in query and not case.operation.path.endswith((".csv", ".parquet")):
        return False
    if case.meta is None or case.meta.generation.mode.is_positive or not isinstance(query, Mapping):
        return True
    lists = {one.name for one in case.operation.query if one.definition.get("schema", {}).get("type") == "array"}
    return all(isinstance(query[name], list) for name in lists & set(query))
