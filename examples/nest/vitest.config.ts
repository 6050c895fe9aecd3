import lockweave from "lockweave/vite";
import { defineConfig } from "vitest/config";

export default defineConfig({ plugins: [lockweave()], test: { include: ["src/**/*.spec.ts"] } });
