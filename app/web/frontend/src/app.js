// What every page gains by scripts. Pages are complete without any of it.
import "./forms.js";
import "./live.js";
import "./tray.js";
import "./prices.js";
import "./copy.js";
import "./suggest.js";
import "./tips.js";
import "./parts.js";
import "./theme_toggle.js";
import "./origin.js";
