// htmx as a global, configured by the meta element of the page: no eval, no injected styles.
import htmx from "htmx.org/dist/htmx.esm.js";

window.htmx = htmx;
