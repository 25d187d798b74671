// A moment, in the reader's own time; which zone that is, it says where the pointer rests.

import { exactMoment, moment } from "../core/text";

export function Moment({ at, none = "" }: { at: string | null | undefined; none?: string }) {
  if (!at) return <>{none}</>;
  return (
    <time dateTime={at} title={exactMoment(at)}>
      {moment(at)}
    </time>
  );
}
