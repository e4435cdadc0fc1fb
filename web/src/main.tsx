// The page's beginning.
import { render } from "preact";
import "./style/tokens.css";

render(<p>bridle</p>, document.getElementById("page")!);
