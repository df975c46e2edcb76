// What every page gains by scripts. Pages are complete without any of it.
import "./htmx.js";
import "./forms.js";
import "./theme_toggle.js";
import "./origin.js";
import "./charts.js";
