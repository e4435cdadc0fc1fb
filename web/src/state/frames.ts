// Work that is done at most once a frame, however often it is asked for; also where nobody looks.

export class Frame {
  private asked = false;
  private readonly work: () => void;

  constructor(work: () => void) {
    this.work = work;
  }

  ask(): void {
    if (this.asked) return;
    this.asked = true;
    // A hidden page gets no frames; its title and its questions go on all the same.
    if (document.visibilityState === "hidden") setTimeout(this.run, 250);
    else requestAnimationFrame(this.run);
  }

  private readonly run = (): void => {
    if (!this.asked) return;
    this.asked = false;
    this.work();
  };
}
