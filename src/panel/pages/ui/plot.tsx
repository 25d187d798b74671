// A figure as it goes: a line of its last values, with the newest in words.

import { useId } from "preact/hooks";

export interface PlotProps {
  title: string;
  hint: string;
  /** The newest value, as people write it. */
  value: string;
  /** From the oldest to the newest. */
  points: number[];
  /** What it may not pass, should there be such a thing. */
  limit?: number;
}

const WIDTH = 240;
const HEIGHT = 64;

export function Plot({ title, hint, value, points, limit }: PlotProps) {
  const id = useId();
  const most = Math.max(...points, limit ?? 0, Number.MIN_VALUE);
  // One alone is a level.
  const drawn = points.length === 1 ? [...points, ...points] : points;
  const at = (point: number, index: number) => {
    const x = (index / (drawn.length - 1)) * WIDTH;
    return `${x.toFixed(1)},${(HEIGHT - (Math.max(0, point) / most) * (HEIGHT - 4) - 2).toFixed(1)}`;
  };
  const line = drawn.map(at).join(" ");
  const isOver = limit !== undefined && (points.at(-1) ?? 0) > limit;
  return (
    <figure class={`card plot ${isOver ? "over" : ""}`} aria-labelledby={`${id}-title`}>
      <figcaption>
        <span id={`${id}-title`}>{title}</span>
        <strong>{value}</strong>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {drawn.length > 1 && <polygon points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />}
        {drawn.length > 1 && <polyline points={line} />}
        {limit !== undefined && <line x1="0" x2={WIDTH} y1={HEIGHT - (limit / most) * (HEIGHT - 4) - 2} y2={HEIGHT - (limit / most) * (HEIGHT - 4) - 2} />}
      </svg>
      <p class="hint">{hint}</p>
    </figure>
  );
}
