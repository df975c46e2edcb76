"""What each type of problem means and what to do about it: what GET /problems/{name} says beside title and status."""

from collections.abc import Mapping
from typing import NamedTuple


class Explanation(NamedTuple):
    """A type of problem explained; `request` is one that is refused so, and `detail` what is then said."""

    meaning: str
    remedy: str
    request: str
    detail: str


EXPLANATIONS: Mapping[str, Explanation] = {
    "bad-request": Explanation(
        "The request cannot be read: its body is not valid JSON, its Range is none, or a browser asks beforehand for a "
        "method that the path does not have.",
        "Correct the request; `detail` says at which character JSON breaks off. Sending it again does not help.",
        'POST /fit {"model":',
        "the body is not valid JSON: Expecting value at character 9",
    ),
    "bad-cursor": Explanation(
        "The value of `cursor` is none that this service gave, or it belongs to another list, filter or order.",
        "Give `next_cursor` as it came, with the parameters of the page that it came with, or follow `link` rel=next.",
        "GET /sizes?cursor=abc",
        "cursor=abc: take next_cursor as it was given, with the same filters and order",
    ),
    "not-found": Explanation(
        "Nothing has this name: no size, series, model or type of problem, or no such path.",
        "Take one of the names that `detail` suggests; GET /docs shows all paths.",
        "GET /sizes/nd40rs_v3",
        "There is no size named 'nd40rs_v3'. Did you mean Standard_ND40rs_v2 or …?",
    ),
    "method-not-allowed": Explanation(
        "The path is there and does not take this method.",
        "Use one of the methods that the header `allow` names.",
        "DELETE /sizes",
        "DELETE is not for /sizes; it takes GET, HEAD, OPTIONS.",
    ),
    "cursor-gone": Explanation(
        "An ingest has changed the catalog since the page that gave the cursor, so a row might come twice or never.",
        "Begin the list again without `cursor`. Ingests are rare, and walks are short.",
        "GET /regions?limit=2&cursor=…",
        "The catalog has changed since this list was begun (revision 3-0f8fad5b, now 4-9cb469fa): a row might "
        "come twice or never. Begin again without cursor.",
    ),
    "precondition-failed": Explanation(
        "The file has changed, and If-Match asks for the one that was.",
        "Ask for the file anew without If-Match; parts of the old and of the new one do not fit together.",
        'GET /sizes.parquet, if-match: "0"',
        "The file is no longer the one that If-Match names; ask for it anew, without If-Match.",
    ),
    "too-long": Explanation(
        "The body is longer than any question can be.",
        "Send at most 1 MiB.",
        "POST /fit with 3 MiB",
        "The body has 3,145,728 bytes; at most 1,048,576 are taken.",
    ),
    "url-too-long": Explanation(
        "The path and the query of the URL are longer than any question has to be.",
        "Ask for fewer values at once, or by POST /fit with a body.",
        "GET /sizes?name=…",
        "The URL has … bytes after the host; at most 8,192 are taken.",
    ),
    "headers-too-long": Explanation(
        "The headers of the request have more bytes together than any client needs.",
        "Send fewer or shorter ones; the service reads no cookies.",
        "GET /sizes, accept-encoding: …",
        "The headers have too many bytes; at most 16,384 are taken.",
    ),
    "not-json": Explanation(
        "The body is of another media type than JSON.",
        "Send `content-type: application/json`, as the header `accept-post` says.",
        "POST /fit, content-type: text/plain",
        "Content-Type says text/plain; send application/json.",
    ),
    "range-not-satisfiable": Explanation(
        "The file ends before the part that Range asks for.",
        "Ask for a part within the length that the header `content-range` names.",
        "GET /sizes.parquet, range: bytes=99999999-",
        "The file ends before the range that is asked for; Content-Range says how long it is.",
    ),
    "bad-parameter": Explanation(
        "A parameter, or a field of the body, is unknown, given twice, of another type, or out of bounds. The OpenAPI "
        "document says what is allowed.",
        "Correct what each entry of `errors` points to; it names the nearest parameter or what is allowed.",
        "GET /sizes?min_gpu_memory=80",
        "min_gpu_memory=80: there is no such parameter; did you mean min_gpu_mem?",
    ),
    "unknown-value": Explanation(
        "The parameter is well formed, and the catalog has nothing of that name: no such region, series, size, column.",
        "Take the name that `detail` suggests, or look it up in GET /regions, /series, /gpus, /sizes.",
        "GET /sizes?region=westeurop",
        "region=westeurop: no such region; did you mean westeurope? …",
    ),
    "contradiction": Explanation(
        "The parts of the question contradict each other, or together say too little to be answered.",
        "Change what each entry of `errors` points to; `detail` says what is missing or what excludes what.",
        "POST /fit {}",
        "give exactly one of resources, inference and training; none is given",
    ),
    "internal-error": Explanation(
        "A fault of the service. Nothing that a client sends should give one.",
        "Tell who runs the service the `request_id`: the log has the cause beside it.",
        "GET /sizes",
        "This is a fault of the service; it has been logged.",
    ),
    "busy": Explanation(
        "As much of this is being done as can be done at once.",
        "Ask again after the seconds that the header `retry-after` names.",
        "GET /prices.csv",
        "16 exports are being written; try again in a minute.",
    ),
    "not-ready": Explanation(
        "The database cannot be reached, its schema is older than this program needs, or it has no catalog yet.",
        "The detail says what to do; ask again after the seconds that the header `retry-after` names.",
        "GET /sizes",
        "The database cannot be reached: connection refused.",
    ),
}
