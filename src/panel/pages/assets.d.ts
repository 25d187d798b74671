declare module "*/style.css" {
  const text: string;
  export default text;
}
declare module "*/widget/source/color.js" {
  export function themed(color: string): string;
}
