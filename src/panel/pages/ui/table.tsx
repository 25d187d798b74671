// A list as a table; on a phone each row stands as a card. The roles are said, as a browser forgets them with the layout.

import type { ComponentChildren } from "preact";

export interface Column<Row> {
  label: string;
  show: (row: Row) => ComponentChildren;
  /** Whether it is a number, or what is done with the row. */
  kind?: "number" | "actions";
}

interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string | number;
  /** The one that was just made. */
  fresh?: string | number | null;
}

export function Table<Row>({ label, columns, rows, keyOf, fresh = null }: TableProps<Row>) {
  return (
    <table class="list" role="table" aria-label={label}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <th key={column.label} role="columnheader" scope="col" class={column.kind ?? ""}>
              {column.kind === "actions" ? <span class="unseen">{column.label}</span> : column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row" class={keyOf(row) === fresh ? "fresh" : ""}>
            {columns.map((column, at) =>
              at === 0 ? (
                <th key={column.label} role="rowheader" scope="row">
                  <bdi>{column.show(row)}</bdi>
                </th>
              ) : (
                <td key={column.label} role="cell" class={column.kind ?? ""} data-label={column.label}>
                  {column.kind ? column.show(row) : <bdi>{column.show(row)}</bdi>}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
