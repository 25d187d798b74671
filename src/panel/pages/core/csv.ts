// Reads a table as spreadsheets write it: commas, semicolons or tabs, quotes, any line end, a mark at its beginning.

/** A row that is not blank, and its number as a spreadsheet counts, blank ones included: from 1. */
export interface CsvRow {
  number: number;
  cells: string[];
}

/** Rows of cells. The separator is the one that the first line has most of. */
export function readCsv(text: string): CsvRow[] {
  const source = text.replace(/^\uFEFF/, "");
  const separator = separatorOf(source);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let at = 0; at < source.length; at++) {
    const letter = source[at]!;
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (source[at + 1] === '"') {
        cell += '"';
        at += 1;
      } else isQuoted = false;
    } else if (letter === '"' && !cell) isQuoted = true;
    else if (letter === separator) {
      row.push(cell);
      cell = "";
    } else if (letter === "\n" || letter === "\r") {
      if (letter === "\r" && source[at + 1] === "\n") at += 1;
      row.push(cell);
      rows.push(row);
      [row, cell] = [[], ""];
    } else cell += letter;
  }
  if (cell || row.length) rows.push([...row, cell]);
  return rows.map((cells, at) => ({ number: at + 1, cells })).filter(({ cells }) => cells.some((it) => it.trim()));
}

function separatorOf(source: string): string {
  const first = source.split(/[\r\n]/, 1)[0] ?? "";
  const outside = first.replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t"].map((separator) => [separator, outside.split(separator).length] as const);
  return counts.reduce((best, next) => (next[1] > best[1] ? next : best))[0];
}
