import { render } from "preact";
import { App } from "./app.js";
import { takeToken } from "./client/token.js";
import { applyTheme } from "./theme.js";

applyTheme();
takeToken();

// The script is not deferred, so the body comes after it.
document.addEventListener("DOMContentLoaded", () => {
  const root = document.getElementById("studio");
  if (root !== null) render(<App />, root);
});
