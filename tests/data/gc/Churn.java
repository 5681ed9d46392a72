import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Allocates for as many ms as it is told and keeps a little, so that a small heap is collected often; then collects once. */
public class Churn {
    public static void main(String[] args) throws Exception {
        long end = System.currentTimeMillis() + Long.parseLong(args[0]);
        List<byte[]> held = new ArrayList<>();
        Random random = new Random(7);
        while (System.currentTimeMillis() < end) {
            for (int i = 0; i < 40; i++) held.add(new byte[random.nextInt(60_000)]);
            if (held.size() > 600) held.subList(0, 300).clear();
            Thread.sleep(4);
        }
        System.gc();
    }
}
