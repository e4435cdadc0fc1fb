// All open questions of all sessions in one place.

import { useEffect, useRef } from "preact/hooks";
import { ApprovalCard } from "../conversation/index.ts";
import { actions } from "../state/actions.ts";
import { toApproval } from "../state/calls.ts";
import type { Approval, Pending } from "../state/model.ts";
import { toFragment } from "../state/route.ts";
import { pendings, role, sessions } from "../state/store.ts";
import { oneLine } from "../text/neutral.ts";
import { Close } from "./icons.tsx";
import { NotifyOffer } from "./notifying.tsx";
import { trayOpen } from "./rooms.ts";
import { count } from "./words.ts";

export function Tray() {
  const room = useRef<HTMLDivElement>(null);
  const before = useRef<Element | null>(null);
  const open = trayOpen.value;
  useEffect(() => {
    if (open) {
      before.current = document.activeElement;
      room.current?.focus();
    } else if (before.current instanceof HTMLElement) {
      before.current.focus();
      before.current = null;
    }
  }, [open]);
  if (!open) return null;
  const found = pendings.value;
  return (
    <div class="tray" ref={room} tabIndex={-1} role="dialog" aria-label="Approvals">
      <div class="tray-top">
        <h2>{found.length ? `${count(found.length, "approval")} needed` : "No approvals needed"}</h2>
        <button type="button" class="button plain square" aria-label="Close" onClick={() => (trayOpen.value = false)}>
          <Close />
        </button>
      </div>
      <NotifyOffer />
      <div class="tray-list">
        {found.length === 0 && <p class="faint">Requests from all sessions appear here: what each wants to do, why, and exactly how.</p>}
        {found.map((pending) => (
          <section key={`${pending.sessionId} ${pending.shown}`} class="tray-one">
            <ApprovalCard approval={approvalOf(pending)} actions={actions} role={role.value} compact />
            <a class="tray-session" href={toFragment(pending.sessionId, pending.seq)} onClick={() => (trayOpen.value = false)}>
              Show it in its session
            </a>
          </section>
        ))}
      </div>
    </div>
  );
}

function nameOf(pending: Pending): string {
  const parent = pending.parent && sessions.value.get(pending.parent)?.title;
  const own = pending.sessionTitle || "Untitled session";
  return oneLine(parent ? `${parent} › ${own}` : own, 200);
}

export function approvalOf(pending: Pending): Approval {
  const asked = toApproval(pending.sessionId, pending.seq, pending.asked, pending.diff, nameOf(pending));
  return { ...asked, shown: pending.shown, callId: pending.callId, expires: pending.expires || asked.expires, state: pending.posted ? "posted" : "open" };
}
