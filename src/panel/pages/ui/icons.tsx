// Strokes on a field of 24 by 24. A decoration: what it means is said in words beside it.

const SHAPES = {
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  back: "M14.5 6l-6 6 6 6",
  forward: "M9.5 6l6 6-6 6",
  up: "M12 19V5M5.5 11.5L12 5l6.5 6.5",
  down: "M12 5v14M5.5 12.5L12 19l6.5-6.5",
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13zM15.5 15.5L20 20",
  check: "M5 12.5l4.5 4.5L19 7.5",
  alert: "M12 8v5M12 16.3v.2M12 3.5a8.5 8.5 0 1 1 0 17 8.5 8.5 0 0 1 0-17z",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.3 10.5v5.5M13.7 10.5v5.5",
  grip: "M9 6h.2M15 6h.2M9 12h.2M15 12h.2M9 18h.2M15 18h.2",
  person: "M12 12.5a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20c.8-3.4 3.8-5 7.5-5s6.7 1.6 7.5 5",
  leave: "M14.5 8V5.5h-10v13h10V16M9.5 12h11M17.5 9l3 3-3 3",
  key: "M14.5 4a5.5 5.5 0 1 1-4 9.3L4 19.8V20h3v-2h2v-2h1.5M16.3 8h.2",
  chat: "M12 3.5c5 0 9 3.4 9 7.7s-4 7.7-9 7.7c-.9 0-1.8-.1-2.6-.3L4.5 20.5l.9-3.7C3.9 15.4 3 13.4 3 11.2c0-4.3 4-7.7 9-7.7z",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={SHAPES[name]} />
    </svg>
  );
}
