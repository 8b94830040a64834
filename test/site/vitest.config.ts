import { defineConfig } from "vitest/config";
import { alias } from "../../vitest.config.js";

/** `npm run test:site`: what needs a browser. */
export default defineConfig({
  resolve: { alias },
  test: { include: ["*.spec.ts"], testTimeout: 180_000, hookTimeout: 180_000 },
});
