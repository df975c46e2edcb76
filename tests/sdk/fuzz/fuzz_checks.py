"""A check for schemathesis: what the document allows is refused only for what the document cannot say.

A name that the catalog does not have, two fields that contradict each other, a forged cursor: these are problems of
types of their own. A `bad-parameter` says that the request is not of the document, so it must never answer one that is.
"""

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
