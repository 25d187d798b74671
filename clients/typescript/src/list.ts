// A list that is read page by page, with a cursor: records that others add or delete meanwhile shift no page.

/** A page of a list. */
export interface Page<T> {
  data: T[];
  /** Whether there are more pages. A page may be shorter than asked for even if there are. */
  hasMore: boolean;
  /** Where the next page begins, for a later run; `null` on the last. */
  nextCursor: string | null;
}

/** What reads one page. */
export type ReadPage<T> = (cursor: string) => Promise<{ page: Page<T>; date: Date }>;

/** Records to iterate over; pages are requested as they are needed. */
export class List<T> implements AsyncIterable<T> {
  /** Longest list that `toArray` collects without being given another limit. */
  static readonly ARRAY_MAX = 10_000;

  readonly #read: ReadPage<T>;
  readonly #first: string;
  #startedAt: Date | undefined;

  constructor(read: ReadPage<T>, cursor: string) {
    this.#read = read;
    this.#first = cursor;
  }

  /** The service's clock when it answered the first page, rounded down: the next `updatedFrom` of a synchronization. */
  get startedAt(): Date | undefined {
    return this.#startedAt;
  }

  /** The pages, one request each. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    for (let cursor: string | null = this.#first; cursor !== null; ) {
      const { page, date } = await this.#read(cursor);
      this.#startedAt ??= date;
      yield page;
      cursor = page.hasMore ? page.nextCursor : null;
    }
  }

  /** The records. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  /** The first record, if there is one. */
  async first(): Promise<T | undefined> {
    for await (const record of this) return record;
    return undefined;
  }

  /** All records; a `RangeError` if there are more than `max`. */
  async toArray(max: number = List.ARRAY_MAX): Promise<T[]> {
    const records: T[] = [];
    for await (const page of this.pages()) {
      records.push(...page.data);
      if (records.length > max) throw new RangeError(`the list has more than ${max} records; iterate over it`);
    }
    return records;
  }
}
