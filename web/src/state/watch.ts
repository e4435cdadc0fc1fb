// Which tab keeps watch: of all tabs of this browser one hears of every session even while nobody
// looks at it, and tells the others what waits. Where the browser has no locks, each keeps its own.

import type { Pending } from "./model.ts";

const NAME = "bridle.watch";

export class Watch {
  private ours = !("locks" in navigator);
  private readonly channel = new BroadcastChannel(NAME);

  constructor(onOurs: () => void, onTold: (found: readonly Pending[]) => void) {
    this.channel.onmessage = (event: MessageEvent<readonly Pending[]>) => {
      if (!this.ours && document.visibilityState === "hidden") onTold(event.data);
    };
    if (this.ours) return;
    // Held for as long as the tab lives; then the next one has it.
    void navigator.locks.request(NAME, () => {
      this.ours = true;
      onOurs();
      return new Promise<never>(() => undefined);
    });
  }

  isOurs(): boolean {
    return this.ours;
  }

  tell(found: readonly Pending[]): void {
    if (this.ours) this.channel.postMessage(found);
  }
}
