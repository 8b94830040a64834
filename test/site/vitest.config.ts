import { defineConfig } from "vitest/config";
import project from "../../vitest.config.js";

/** `npm run test:site`: what needs a browser. */
export default defineConfig({
  ...(project.resolve && { resolve: project.resolve }),
  test: { include: ["*.spec.ts"], testTimeout: 180_000, hookTimeout: 180_000 },
});
