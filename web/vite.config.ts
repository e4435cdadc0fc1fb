// How the page is built: one script and one sheet for the first load, the rest when it is needed.
// Names carry a hash of what is in them, so that a browser may keep them for ever.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: process.env.BRIDLE_PAGE_OUT ?? "../src/bridle/server/page",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses
    modulePreload: { polyfill: false },
    target: "es2022",
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    reportCompressedSize: false,
  },
});
