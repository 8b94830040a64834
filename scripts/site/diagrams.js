// Draws the diagrams of a page, and again when the reader changes between light and dark.
(() => {
  const { mermaid } = globalThis;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const diagrams = [...document.querySelectorAll("pre.mermaid")].map((element) => ({
    element,
    code: element.textContent,
  }));

  const isDark = () => {
    const { theme } = document.documentElement.dataset;
    return theme === "dark" || (theme !== "light" && dark.matches);
  };

  const draw = async () => {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      theme: isDark() ? "dark" : "neutral",
      // Mermaid's own grey has too little contrast with the labels' text.
      themeVariables: isDark() ? { edgeLabelBackground: "#444444" } : {},
    });
    for (const [index, { element, code }] of diagrams.entries()) {
      const { svg } = await mermaid.render(`diagram-${index}`, code);
      element.innerHTML = svg;
      element.dataset.drawn = "true";
    }
  };

  // One after the other: a second change may come while the first is being drawn.
  let drawn = Promise.resolve();
  const redraw = () => {
    drawn = drawn.then(draw, draw);
  };
  dark.addEventListener("change", redraw);
  new MutationObserver(redraw).observe(document.documentElement, {
    attributeFilter: ["data-theme"],
  });
  redraw();
})();
