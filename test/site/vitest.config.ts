import { defineConfig } from "vitest/config";

/** `npm run test:site`: what needs a browser. */
export default defineConfig({
  test: { include: ["*.spec.ts"], testTimeout: 180_000, hookTimeout: 180_000 },
});
