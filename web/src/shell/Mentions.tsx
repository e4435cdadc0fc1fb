// The files that fit what was written after an @, below the composer's words.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client.ts";
import { oneLine } from "../text/neutral.ts";

const NONE: readonly string[] = [];

export function usePaths(sessionId: string, workspace: string, query: string | null): readonly string[] {
  const [paths, setPaths] = useState<readonly string[]>(NONE);
  useEffect(() => {
    if (query === null) {
      setPaths(NONE);
      return;
    }
    const control = new AbortController();
    const wait = setTimeout(() => {
      const found = sessionId ? api.files(sessionId, query, control.signal) : api.workspaceFiles(workspace, query, control.signal);
      found.then((found) => setPaths(found.paths), () => undefined);
    }, 80);
    return () => {
      clearTimeout(wait);
      control.abort();
    };
  }, [sessionId, workspace, query]);
  return paths;
}

interface Props {
  readonly paths: readonly string[];
  readonly at: number;
  readonly pick: (path: string) => void;
}

export function Mentions({ paths, at, pick }: Props) {
  return (
    <ul class="mentions" id="mentions" role="listbox" aria-label="Files">
      {paths.map((path, index) => (
        <li
          key={path}
          id={`mention-${index}`}
          role="option"
          aria-selected={index === at}
          ref={(row) => {
            if (index === at) row?.scrollIntoView({ block: "nearest" });
          }}
          onPointerDown={(event) => {
            event.preventDefault(); // the cursor stays where it is
            pick(path);
          }}
        >
          <bdi>{oneLine(path, 400)}</bdi>
        </li>
      ))}
    </ul>
  );
}
