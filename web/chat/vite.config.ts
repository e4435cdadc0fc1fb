// How the chat's page is built: as the other one, and served below /chat.
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  base: "/chat/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: process.env.BRIDLE_PAGE_OUT ?? "../../src/bridle/server/chat_page",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses
    modulePreload: { polyfill: false },
    target: "es2022",
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    reportCompressedSize: false,
  },
});
