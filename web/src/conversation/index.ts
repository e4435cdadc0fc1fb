// The conversation and its parts, for the shell.

import "./conversation.css";
import "./moving.css";
import "./markdown.css";
import "./calls.css";
import "./questions.css";

export { ApprovalCard } from "./approval.tsx";
export { Conversation } from "./conversation.tsx";
export { Diff } from "./diff.tsx";
export { Markdown } from "./markdown.tsx";
export { Timeline } from "./timeline.tsx";
export { byWhom, signedInAs } from "./who.ts";
