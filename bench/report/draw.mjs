/** Tables as plots: SVG, with bars on a logarithmic scale, one group for each table. */

const width = 720;
const labels = 310;
const rowHeight = 22;

const bars = { floor: "floor", ours: "waymark", peer: "peer", reference: "other" };

const style =
  "text{font:12px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}.group{font-weight:600}" +
  ".name{text-anchor:end}.note{fill:#59636e}.waymark{fill:#2b8a3e}.floor{fill:#868e96}.peer{fill:#e67700}" +
  ".other{fill:#4dabf7}.page{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}" +
  ".page{fill:#0d1117}.waymark{fill:#40c057}.peer{fill:#ff922b}}";

/**
 * @param {string} title
 * @param {readonly import("../lib/measure.mjs").Table[]} tables of one unit
 * @returns {string}
 */
export function draw(title, tables) {
  const medians = tables.flatMap(({ rows }) => rows.map(({ median }) => median));
  const least = Math.min(...medians);
  const low = 10 ** Math.floor(Math.log10(least) - 0.3);
  const span = Math.log10(Math.max(...medians) / low) || 1;
  const length = (value) => ((width - labels - 90) * Math.log10(value / low)) / span;
  let y = 34;
  const body = [];
  for (const { title: group, unit, rows } of tables) {
    y += 22;
    body.push(
      `<text class="group" x="8" y="${y}">${escaped(clip(`${group}, ${unit}`, 108))}</text>`,
    );
    for (const { name, role, median } of rows) {
      y += rowHeight;
      const bar = Math.max(2, length(median)).toFixed(1);
      body.push(
        `<text class="name" x="${labels - 8}" y="${y}">${escaped(clip(name, 50))}</text>`,
        `<rect class="${bars[role] ?? "other"}" x="${labels}" y="${y - 12}" width="${bar}" height="15" rx="2"/>`,
        `<text x="${labels + Number(bar) + 6}" y="${y}">${figure(median)}</text>`,
      );
    }
    y += 6;
  }
  const height = y + 34;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${style}</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="6"/>`,
    `<text class="title" x="8" y="24">${escaped(title)}</text>`,
    ...body,
    `<text class="note" x="8" y="${height - 12}">${legend(tables)}</text>`,
    "</svg>\n",
  ].join("\n");
}

function legend(tables) {
  const roles = new Set(tables.flatMap(({ rows }) => rows.map(({ role }) => role)));
  const colours = [
    "green waymark",
    roles.has("floor") && "grey the floor",
    roles.has("peer") && "orange peers",
    roles.has("reference") && "blue the rest",
  ];
  // So many in a second: the more the better.
  const better = tables.every(({ unit }) => unit.endsWith("/s")) ? "longer" : "shorter";
  return `Medians, logarithmic scale, ${better} is better: ${colours.filter(Boolean).join(", ")}.`;
}

function clip(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** A figure as people read it: two digits more than it needs, at most. */
export function figure(value) {
  if (value === undefined || value === null) return "";
  const digits = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toLocaleString("en", {
    minimumFractionDigits: Number.isInteger(value) ? 0 : digits,
    maximumFractionDigits: digits,
  });
}
