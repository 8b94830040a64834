// Empties dist/, so that a file deleted from src/ can't live on in the package.
import { rmSync } from "node:fs";

rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true });
