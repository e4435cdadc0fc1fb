// In which language the page and the assistant speak.

import { speak } from "./living.ts";
import { language, words } from "./state.ts";
import { LANGUAGES } from "./words.ts";

export function Chooser() {
  return (
    <label class="language">
      <span class="sr">{words.value.language}</span>
      <select value={language.value} onChange={(event) => speak(event.currentTarget.value)}>
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option key={code} value={code}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
