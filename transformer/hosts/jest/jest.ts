import { createTransformer } from "./transformer";

// One object and no names, since Jest takes in a module in more ways than one, and all of them find that.
const transform: object = { createTransformer };

export = transform;
