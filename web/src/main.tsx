// The page's beginning: everything is started here, and nothing by being imported.

import { render } from "preact";
import { App } from "./shell/App.tsx";
import { listenToKeys } from "./shell/keys.ts";
import { followQuestions, followTitle } from "./shell/notifying.tsx";
import { tick } from "./shell/rooms.ts";
import { followTheme } from "./shell/theme.ts";
import { begin, follow } from "./state/living.ts";
import "./style/tokens.css";
import "./style/base.css";
import "./style/list.css";
import "./style/session.css";
import "./style/composer.css";
import "./style/details.css";
import "./style/over.css";
import "./style/page.css";

followTheme();
const page = document.getElementById("page")!;
page.textContent = ""; // it said that the page is loading
render(<App />, page);
follow();
followTitle();
followQuestions();
listenToKeys();
tick();
void begin();
