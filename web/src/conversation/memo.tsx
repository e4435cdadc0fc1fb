// A component that is rendered again only when something that it was given is another object.

import { Component, type ComponentType, type JSX } from "preact";

/** The component, compared by identity. */
export function memo<P extends object>(Inner: (props: P) => JSX.Element | null): ComponentType<P> {
  return class Kept extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      return differs(this.props, next);
    }
    override render(): JSX.Element {
      const props = this.props as P & JSX.IntrinsicAttributes;
      return <Inner {...props} />;
    }
  } as unknown as ComponentType<P>;
}

function differs(old: object, now: object): boolean {
  const before = old as Record<string, unknown>;
  const after = now as Record<string, unknown>;
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const key of keys) if (before[key] !== after[key]) return true;
  return false;
}
