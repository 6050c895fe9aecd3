/** Returns the options of Node, from its arguments and its environment. */
export function optionsOfNode(): string[] {
  const { NODE_OPTIONS = "" } = process.env;
  return [...process.execArgv, ...NODE_OPTIONS.split(/\s+/)];
}

/** Returns the modules that Node loads first, except for Lockweave. They may compile files. */
export function otherPreloads(): string[] {
  const options = optionsOfNode().join(" ");
  const names = [
    ...options.matchAll(/(?<!\S)(?:-r|--(?:require|import|(?:experimental-)?loader))[ =](\S+)/g),
  ];
  return names
    .map(([, name = ""]) => name)
    .filter((name) => !/^lockweave\/|[\\/]hosts[\\/]register[\\/]/.test(name));
}
