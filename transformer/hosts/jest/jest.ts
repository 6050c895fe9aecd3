import { createTransformer } from "./transformer";

// Exports one object without named exports. Jest loads the module in several ways, and all of them find this object.
const transform: object = { createTransformer };

export = transform;
