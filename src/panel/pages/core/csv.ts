// Parses CSV as spreadsheets export it: commas, semicolons or tabs, quotes, any line ending, and a byte order mark.

/** A row that is not blank, and its number in the spreadsheet: from 1, blank rows included. */
export interface CsvRow {
  number: number;
  cells: string[];
}

/** The rows that are not blank. The separator is the one that occurs most often in the first line. */
export function readCsv(text: string): CsvRow[] {
  const source = text.replace(/^\uFEFF/, "");
  const separator = separatorOf(source);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let index = 0; index < source.length; index++) {
    const letter = source[index]!;
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (source[index + 1] === '"') {
        cell += '"';
        index += 1;
      } else isQuoted = false;
    } else if (letter === '"' && !cell) isQuoted = true;
    else if (letter === separator) {
      row.push(cell);
      cell = "";
    } else if (letter === "\n" || letter === "\r") {
      if (letter === "\r" && source[index + 1] === "\n") index += 1;
      row.push(cell);
      rows.push(row);
      [row, cell] = [[], ""];
    } else cell += letter;
  }
  if (cell || row.length) rows.push([...row, cell]);
  const numbered = rows.map((cells, index) => ({ number: index + 1, cells }));
  return numbered.filter(({ cells }) => cells.some((cell) => cell.trim()));
}

function separatorOf(source: string): string {
  const first = source.split(/[\r\n]/, 1)[0] ?? "";
  const outside = first.replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t"].map((separator) => [separator, outside.split(separator).length] as const);
  return counts.reduce((best, next) => (next[1] > best[1] ? next : best))[0];
}
