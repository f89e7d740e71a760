package benchmarks;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The local disk with files of data as slow as those of an object store: each is a stream of its
 * own that takes a fixed number of bytes a second, after a round trip.
 */
public class ThrottledFileSystem extends LocalFileSystem {
  @Override
  public FSDataOutputStream create(
      Path path, FsPermission permission, boolean overwrite, int bufferSize,
      short replication, long blockSize, Progressable progress) throws IOException {
    FSDataOutputStream out = super.create(
        path, permission, overwrite, bufferSize, replication, blockSize, progress);
    if (!path.getName().startsWith("part-")) {
      return out;
    }
    sleep(getConf().getLong("throttled.open_millis", 0));
    return new FSDataOutputStream(
        new Throttled(out, getConf().getLong("throttled.bytes_per_second", Long.MAX_VALUE)), null);
  }

  private static void sleep(long millis) throws IOException {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new IOException(stopped);
    }
  }

  private static final class Throttled extends OutputStream {
    private final OutputStream out;
    private final long rate;
    private final long begun = System.nanoTime();
    private long written;

    Throttled(OutputStream out, long rate) {
      this.out = out;
      this.rate = rate;
    }

    @Override
    public void write(int value) throws IOException {
      out.write(value);
      written++;
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      out.write(bytes, offset, length);
      written += length;
      long due = (long) (1000.0 * written / rate) - (System.nanoTime() - begun) / 1_000_000;
      if (due > 0) {
        sleep(due);
      }
    }

    @Override
    public void flush() throws IOException {
      out.flush();
    }

    @Override
    public void close() throws IOException {
      out.close();
    }
  }
}
