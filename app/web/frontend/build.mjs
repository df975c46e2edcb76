// Bundles scripts, fonts and licences into ../static/dist; `make assets` runs it.
import { build } from "esbuild";
import { cp, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const here = import.meta.dirname;
const out = join(here, "..", "static", "dist");
const modules = join(here, "node_modules");
const FONTS = [
  ["IBM Plex Sans", "ibm-plex-sans", 400],
  ["IBM Plex Sans", "ibm-plex-sans", 600],
  ["IBM Plex Mono", "ibm-plex-mono", 400],
];

await rm(out, { recursive: true, force: true });
await mkdir(join(out, "fonts"), { recursive: true });

const options = { bundle: true, minify: true, legalComments: "none", target: "es2022", absWorkingDir: here, outdir: out, metafile: true };
const results = [
  await build({ ...options, entryPoints: ["src/app.js"], format: "esm" }),
  await build({ ...options, entryPoints: ["src/theme.js"], format: "iife" }),
];

// Only the latin subset: names of sizes and regions are ASCII, and other letters fall back to the system's font.
const faces = [];
for (const [family, name, weight] of FONTS) {
  const file = `${name}-latin-${weight}-normal.woff2`;
  await cp(join(modules, "@fontsource", name, "files", file), join(out, "fonts", file));
  faces.push(`@font-face{font-family:"${family}";font-style:normal;font-weight:${weight};font-display:optional;src:url(fonts/${file}) format("woff2")}`);
}
await writeFile(join(out, "fonts.css"), `${faces.join("\n")}\n`);

// The licence of every package that is in a bundle, and of the fonts.
const bundled = results.flatMap((result) => Object.keys(result.metafile.inputs));
const packages = new Set(["@fontsource/ibm-plex-sans", "@fontsource/ibm-plex-mono"]);
for (const path of bundled) {
  const found = path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const licences = [];
for (const name of [...packages].sort()) {
  const about = JSON.parse(await readFile(join(modules, name, "package.json"), "utf8"));
  const entries = await readdir(join(modules, name), { withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && /^(licen[cs]e|notice)/i.test(entry.name)).map((entry) => entry.name).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(modules, name, file), "utf8")));
  licences.push([`${name} ${about.version}: ${about.license}`, ...texts.map((text) => text.trim())].join("\n\n"));
}
await writeFile(join(out, "licences.txt"), `${licences.join("\n\n" + "=".repeat(80) + "\n\n")}\n`);
