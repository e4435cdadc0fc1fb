// The parser gives the same blocks however the bytes were cut.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "./sse.ts";

const TEXT = '\uFEFF: keep\r\n\r\nid: 7\nevent: text_delta\ndata: {"a":\ndata: 1}\n\nid: 9\n\nevent: only\n\ndata:x\r\rdata\n\n';
const BLOCKS = [
  { name: "text_delta", data: '{"a":\n1}', id: "7" },
  { name: "message", data: "", id: "9" },
  { name: "message", data: "x", id: null },
  { name: "message", data: "", id: null },
];

test("blocks are the same wherever the text is cut", () => {
  for (let cut = 0; cut <= TEXT.length; cut += 1) {
    const parser = new SseParser();
    assert.deepEqual([...parser.feed(TEXT.slice(0, cut)), ...parser.feed(TEXT.slice(cut))], BLOCKS, `cut at ${cut}`);
  }
  const parser = new SseParser();
  assert.deepEqual([...TEXT].flatMap((one) => parser.feed(one)), BLOCKS);
});
