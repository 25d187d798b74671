// The checkboxes of permissions: a row for each module, a column for each method.

import type { Method } from "../core/client";
import { METHODS, METHOD_NAMES, MODULES, type Module } from "../core/modules";
import type { Permissions } from "../core/shapes";
import { say } from "../core/text";
import { words } from "../core/words";

interface MatrixProps {
  id: string;
  value: Permissions;
  change: (value: Permissions) => void;
}

export function Matrix({ id, value, change }: MatrixProps) {
  const has = (module: Module, method: Method) => value[module.name]?.includes(method) ?? false;
  /** Sets the cells that `selects` returns true for, and leaves the others. */
  const set = (selects: (module: Module, method: Method) => boolean, isAllowed: boolean) => {
    const next: Permissions = {};
    for (const module of MODULES) {
      const methods = module.methods.filter((method) => (selects(module, method) ? isAllowed : has(module, method)));
      if (methods.length) next[module.name] = [...methods];
    }
    change(next);
  };
  const isAll = (selects: (module: Module, method: Method) => boolean) =>
    MODULES.every((module) => module.methods.every((method) => !selects(module, method) || has(module, method)));
  const everything = () => true;
  return (
    <table class="matrix" id={id} tabIndex={-1}>
      <thead>
        <tr>
          <th scope="col">
            <label class="check">
              <input type="checkbox" checked={isAll(everything)} onChange={(event) => set(everything, event.currentTarget.checked)} />
              <span>{say(words.selectAll)}</span>
            </label>
          </th>
          {METHODS.map((method) => (
            <th key={method} scope="col">
              <label class="check stacked">
                <input
                  type="checkbox"
                  checked={isAll((_, it) => it === method)}
                  onChange={(event) => set((_, it) => it === method, event.currentTarget.checked)}
                />
                <span>{say(METHOD_NAMES[method])}</span>
              </label>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {MODULES.map((module) => (
          <tr key={module.name}>
            <th scope="row">
              <label class="check">
                <input
                  type="checkbox"
                  checked={isAll((it) => it === module)}
                  onChange={(event) => set((it) => it === module, event.currentTarget.checked)}
                />
                <span>{say(module.label)}</span>
              </label>
            </th>
            {METHODS.map((method) => (
              <td key={method}>
                {module.methods.includes(method) && (
                  <label class="check">
                    <input
                      type="checkbox"
                      checked={has(module, method)}
                      aria-label={`${say(module.label)}: ${say(METHOD_NAMES[method])}`}
                      onChange={(event) => set((it, other) => it === module && other === method, event.currentTarget.checked)}
                    />
                  </label>
                )}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
