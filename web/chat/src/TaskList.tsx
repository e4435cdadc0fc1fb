// The list beside the chat: what is to do, then what is done. It changes by talking alone.

import { Check, Clock } from "../../src/shell/icons.tsx";
import { oneLine } from "../../src/text/neutral.ts";
import type { Task } from "./api.ts";
import { fresh, language, tasks, words } from "./state.ts";
import { dueText } from "./when.ts";
import { counted } from "./words.ts";

export function TaskList() {
  const w = words.value;
  const found = tasks.value;
  const sorted = [...found.tasks.filter((one) => !one.completed), ...found.tasks.filter((one) => one.completed)];
  return (
    <aside class="tasks" aria-label={w.tasks}>
      <div class="tasks-head">
        <h2>{w.tasks}</h2>
        <p class="faint" role="status">
          {counted(language.value, found.open, w.open)} · {counted(language.value, found.done, w.done)}
        </p>
      </div>
      {sorted.length === 0 && <p class="faint empty">{w.noTasks}</p>}
      <ul class="list">
        {sorted.map((one) => (
          // Chromium keeps the old style of a title whose task changes, so it is made anew
          <Item key={`${one.id} ${one.completed}`} task={one} />
        ))}
      </ul>
      {found.next && <p class="faint">{w.shown}</p>}
    </aside>
  );
}

function Item({ task }: { readonly task: Task }) {
  const w = words.value;
  const due = task.due ? dueText(task.due, w, language.value, new Date()) : null;
  const late = due !== null && due.late && !task.completed;
  const rank = task.priority === "High" ? w.high : task.priority === "Low" ? w.low : "";
  return (
    <li class={`task${task.completed ? " is-done" : ""}${fresh.value.has(task.id) ? " is-fresh" : ""}`}>
      <span class="mark-of" aria-hidden="true">
        {task.completed && <Check />}
      </span>
      <div>
        <p class="task-title">
          <span class="sr">{task.completed ? w.isDone : w.isOpen}</span> <bdi>{oneLine(task.title, 200)}</bdi>
        </p>
        {task.notes && (
          <p class="notes">
            <bdi>{oneLine(task.notes, 160)}</bdi>
          </p>
        )}
        {(due || rank || task.tags.length > 0) && (
          <p class="facts">
            {due && (
              <span class={late ? "fact late" : "fact"}>
                <Clock /> {due.text}
                {late && ` · ${w.overdue}`}
              </span>
            )}
            {rank && !task.completed && <span class={task.priority === "High" ? "fact high" : "fact"}>{rank}</span>}
            {task.tags.map((tag) => (
              <span key={tag} class="fact tag">
                <bdi>#{oneLine(tag, 50)}</bdi>
              </span>
            ))}
          </p>
        )}
      </div>
    </li>
  );
}
