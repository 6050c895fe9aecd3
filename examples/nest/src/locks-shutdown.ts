import { type BeforeApplicationShutdown, Injectable } from "@nestjs/common";
import { shutdown } from "lockweave";

@Injectable()
export class LocksShutdown implements BeforeApplicationShutdown {
  async beforeApplicationShutdown(): Promise<void> {
    await shutdown({ patience: "20s" });
  }
}
