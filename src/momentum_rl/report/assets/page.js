// The theme: the reader's system decides until the button is pressed. Colours are CSS variables, in
// the figures too, so a change of theme redraws nothing.
(() => {
  "use strict";
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const recall = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* private */ } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const label = () => {
    button.textContent = isDark() ? "☀ Light" : "☾ Dark";
    button.setAttribute("aria-label", isDark() ? "Use the light theme" : "Use the dark theme");
  };
  const kept = recall();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  label();

  // The figures: each static drawing is replaced once its interactive one is ready; if that fails,
  // the static one stays.
  const narrow = 480;
  const draw = async (script) => {
    const plot = document.getElementById(script.dataset.plot);
    const fallback = plot.firstElementChild;
    const holder = document.createElement("div");
    const spec = JSON.parse(script.textContent);
    const width = plot.clientWidth;
    delete spec.title;
    delete spec.background;
    if (spec.usermeta) (spec.spec || spec).layer.push(spec.usermeta.hover);
    if (spec.layer) {
      spec.width = "container";
      spec.autosize = { type: "fit-x", contains: "padding" };
    }
    if (spec.facet && spec.columns) { // panels: as many side by side as there is room for
      spec.columns = width < narrow ? 2 : Math.min(width < 700 ? 3 : 4, spec.columns);
      spec.spec.width = Math.max(70, Math.floor(width / spec.columns) - 64);
      spec.spec.height = Math.max(80, Math.round(0.65 * spec.spec.width));
    }
    if (width < narrow) {
      if (!spec.facet) spec.height = 260;
      spec.config.legend.columns = Math.min(spec.facet ? 1 : 2, spec.config.legend.columns);
    }
    plot.replaceChildren(holder);
    try {
      await vegaEmbed(holder, spec, {
        mode: "vega-lite", renderer: "svg", actions: false,
      });
      plot.dataset.state = "interactive";
    } catch (error) {
      plot.replaceChildren(fallback);
      plot.dataset.state = "static";
      console.error(error);
    }
  };
  document.querySelectorAll("script[data-plot]").forEach(draw);
})();
