// The chat page's beginning: everything is started here, and nothing by being imported.

import { render } from "preact";
import { followTheme } from "../../src/shell/theme.ts";
import { App } from "./App.tsx";
import { begin } from "./living.ts";
import "../../src/style/tokens.css";
import "../../src/style/base.css";
import "./chat.css";
import "./talk.css";

followTheme();
render(<App />, document.getElementById("page")!);
begin();
